export default { test: { globalSetup: "bolide-db/vitest" } };
