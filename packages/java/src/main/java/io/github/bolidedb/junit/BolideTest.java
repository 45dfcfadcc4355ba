package io.github.bolidedb.junit;

import java.lang.annotation.Documented;
import java.lang.annotation.ElementType;
import java.lang.annotation.Inherited;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;
import org.junit.jupiter.api.extension.ExtendWith;

/**
 * A class, or a test, whose methods may have a parameter of type {@link io.github.bolidedb.Bolide} or {@link io.github.bolidedb.BolideClock}; the same
 * as {@code @ExtendWith(BolideExtension.class)}, see {@link BolideExtension}.
 */
@Documented
@Inherited
@Target({ElementType.TYPE, ElementType.METHOD})
@Retention(RetentionPolicy.RUNTIME)
@ExtendWith(BolideExtension.class)
public @interface BolideTest {
    /** Further options of the server, such as {@code --enforce-throughput}. */
    String[] args() default {};
}
