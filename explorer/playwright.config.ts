import { defineConfig } from "@playwright/test";
import type { Options } from "./tests/server";

// The system's Chromium: no browser is downloaded. Features of its own that ask the network are off.
export default defineConfig<Options>({
  testDir: "tests",
  outputDir: "../target/explorer-tour",
  fullyParallel: true,
  workers: 2,
  forbidOnly: true,
  timeout: 90_000,
  expect: { timeout: 15_000 },
  reporter: [["line"]],
  projects: [
    { name: "memory" },
    // The same tour over HTTPS, with the certificate that the server has made, and with its data on the disk.
    { name: "disk", testMatch: ["tour.spec.ts", "mongo.spec.ts"], use: { isOnDisk: true, ignoreHTTPSErrors: true } },
  ],
  use: {
    viewport: { width: 1280, height: 800 },
    trace: "retain-on-failure",
    launchOptions: {
      executablePath: process.env["BOLIDE_CHROMIUM"] ?? "/usr/bin/chromium",
      args: [
        "--no-sandbox",
        "--disable-gpu",
        "--disable-quic",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
      ],
    },
  },
});
