package io.github.bolidedb.junit;

import io.github.bolidedb.Bolide;
import io.github.bolidedb.BolideClock;
import org.junit.jupiter.api.extension.ExtensionContext;
import org.junit.jupiter.api.extension.ExtensionContext.Namespace;
import org.junit.jupiter.api.extension.ParameterContext;
import org.junit.jupiter.api.extension.ParameterResolver;
import org.junit.platform.commons.support.AnnotationSupport;

/**
 * Passes a server, or its clock, to tests.
 *
 * <p>A test method and its {@code @BeforeEach} and {@code @AfterEach} methods get a server of their own, which ends with the test. If a {@code
 * @BeforeAll} method or the constructor has such a parameter, all tests of the class share the server that it got.
 */
public final class BolideExtension implements ParameterResolver {
    private static final Namespace NAMESPACE = Namespace.create(BolideExtension.class);

    /** For JUnit, which makes extensions itself. */
    public BolideExtension() {}

    @Override
    public boolean supportsParameter(ParameterContext parameter, ExtensionContext context) {
        Class<?> type = parameter.getParameter().getType();
        return type == Bolide.class || type == BolideClock.class;
    }

    @Override
    public Object resolveParameter(ParameterContext parameter, ExtensionContext context) {
        // A server of the class is found here by the context of a test.
        Running running = context.getStore(NAMESPACE).getOrComputeIfAbsent(Running.class, key -> start(context), Running.class);
        return parameter.getParameter().getType() == Bolide.class ? running.server : running.server.clock();
    }

    private static Running start(ExtensionContext context) {
        String[] args = context.getElement()
                .flatMap(element -> AnnotationSupport.findAnnotation(element, BolideTest.class))
                .or(() -> context.getTestClass().flatMap(type -> AnnotationSupport.findAnnotation(type, BolideTest.class)))
                .map(BolideTest::args)
                .orElse(new String[0]);
        return new Running(Bolide.builder().args(args).start());
    }

    /** A server that JUnit closes with the context that it belongs to. */
    @SuppressWarnings("deprecation") // The interface that takes its place is not in JUnit before 5.13.
    private static final class Running implements ExtensionContext.Store.CloseableResource, AutoCloseable {
        private final Bolide server;

        Running(Bolide server) {
            this.server = server;
        }

        @Override
        public void close() {
            server.close();
        }
    }
}
