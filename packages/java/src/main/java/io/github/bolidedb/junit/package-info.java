/** The extension for JUnit: a server as a parameter of tests. */
package io.github.bolidedb.junit;
