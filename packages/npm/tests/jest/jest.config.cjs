module.exports = {
  globalSetup: "bolide-db/jest",
  globalTeardown: "bolide-db/jest-teardown",
  testEnvironment: "node",
};
