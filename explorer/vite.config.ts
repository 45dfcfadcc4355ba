import preact from "@preact/preset-vite";
import { defineConfig, type Plugin } from "vite";

/** The built files end as text files do. */
const lastLine: Plugin = {
  name: "last-line",
  generateBundle(_, bundle) {
    for (const file of Object.values(bundle)) {
      if (file.type === "chunk") file.code = `${file.code.trimEnd()}\n`;
      else if (typeof file.source === "string") file.source = `${file.source.trimEnd()}\n`;
    }
  },
};

// The built files are in the repository and in the server's binary, so their names stay the same. The server sends them with an ETag.
export default defineConfig({
  base: "/_explorer/",
  plugins: [preact({ devToolsEnabled: false }), lastLine],
  build: {
    target: "es2022",
    modulePreload: { polyfill: false },
    // An image within a style sheet would need `data:` in the policy of the page.
    assetsInlineLimit: 0,
    chunkSizeWarningLimit: 700,
    // Each licence wants its text to be passed on with the code.
    license: { fileName: "licences.md" },
    rollupOptions: {
      output: {
        entryFileNames: "app.js",
        chunkFileNames: "[name].js",
        assetFileNames: "[name][extname]",
      },
    },
  },
  server: {
    // `npm run dev` beside a server on the usual port that was started with `--allow-origin http://localhost:5173`.
    proxy: Object.fromEntries(["/dbs", "/_bolide", "/_explorer/session"].map((path) => [path, "http://localhost:8081"])),
  },
});
