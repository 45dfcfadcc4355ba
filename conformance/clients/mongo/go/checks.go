// Named checks and their helpers.
//
// A check is a function of the tour's world that returns an error when its claim does not hold; its name is the claim.

package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
)

// Tour runs checks and counts them.
type Tour struct {
	world  *World
	passed int
	failed int
}

// check runs one check and prints `ok name` or `FAIL name: reason`.
func (tour *Tour) check(name string, body func(*World) error) {
	if err := body(tour.world); err != nil {
		tour.failed++
		text := []rune(strings.Join(strings.Fields(err.Error()), " "))
		fmt.Printf("FAIL %s: %s\n", name, string(text[:min(len(text), 400)]))
		return
	}
	tour.passed++
	fmt.Printf("ok %s\n", name)
}

// finish prints the totals and returns how many checks failed.
func (tour *Tour) finish() int {
	fmt.Printf("%d passed, %d failed\n", tour.passed, tour.failed)
	return tour.failed
}

// equal fails unless both values are equal; numbers are equal by value, and the order of fields counts.
func equal(actual, expected any, what string) error {
	if same(actual, expected) {
		return nil
	}
	return fmt.Errorf("%s: expected %v, got %v", what, expected, actual)
}

func same(one, other any) bool {
	switch left := one.(type) {
	case bson.D:
		right, ok := other.(bson.D)
		return ok && slices.EqualFunc(left, right, func(a, b bson.E) bool { return a.Key == b.Key && same(a.Value, b.Value) })
	case bson.A:
		right, ok := other.(bson.A)
		return ok && slices.EqualFunc(left, right, same)
	}
	left, isNumber := number(one)
	right, otherIsNumber := number(other)
	if isNumber || otherIsNumber {
		return isNumber && otherIsNumber && left == right
	}
	return one == other
}

// number returns a number without its type; every number of the tour is exact as a double.
func number(value any) (float64, bool) {
	switch number := value.(type) {
	case int:
		return float64(number), true
	case int32:
		return float64(number), true
	case int64:
		return float64(number), true
	case float64:
		return number, true
	}
	return 0, false
}

// refused expects that the server refused a call with this code.
func refused(code int, err error) error {
	var refusal mongo.ServerError
	if errors.As(err, &refusal) && refusal.HasErrorCode(code) {
		return nil
	}
	return fmt.Errorf("expected code %d, got %v", code, err)
}

// first returns the first error of a few, so that a check may line up its claims.
func first(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
