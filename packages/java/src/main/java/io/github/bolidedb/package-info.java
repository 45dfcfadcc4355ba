/**
 * Bolide for tests: a database server that starts in milliseconds, and a clock that the test moves.
 *
 * <pre>{@code
 * try (Bolide db = Bolide.start()) {
 *     // … a client of Cosmos DB with db.endpoint() and db.key(), or one of MongoDB with db.mongoUri()
 *     db.clock().advance(Duration.ofDays(30));
 * }
 * }</pre>
 *
 * <p>A server keeps its data in memory, listens on free ports of 127.0.0.1 and has a virtual clock, unless {@link
 * io.github.bolidedb.Bolide#builder()} says otherwise. It ends when it is closed, and never outlives the process that started it. The package
 * needs nothing but a JDK.
 */
package io.github.bolidedb;
