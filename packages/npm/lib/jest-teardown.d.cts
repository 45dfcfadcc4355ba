/** The global teardown: stops the server of the global setup. */
declare function teardown(): Promise<void>;
export = teardown;
