// Named checks and their helpers.
//
// A check is a function of the tour's world that returns an error when its claim does not hold; its name is the claim.

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"sort"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
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

// equal fails unless both values are deeply equal as JSON; the message shows both.
func equal(actual, expected any, what string) error {
	if reflect.DeepEqual(plain(actual), plain(expected)) {
		return nil
	}
	return fmt.Errorf("%s: expected %s, got %s", what, text(expected), text(actual))
}

// refused expects that the server refused a call with this status.
func refused(status int, err error) error {
	var refusal *azcore.ResponseError
	if errors.As(err, &refusal) {
		return equal(refusal.StatusCode, status, "status of `"+err.Error()+"`")
	}
	return fmt.Errorf("expected status %d, got %v", status, err)
}

// first returns the first error of a few, so that a check may line up its claims.
func first(claims ...error) error {
	for _, err := range claims {
		if err != nil {
			return err
		}
	}
	return nil
}

// sorted returns a copy of rows of any shape in one order, to compare results without an order.
func sorted(rows []any) []any {
	copied := append([]any{}, rows...)
	sort.Slice(copied, func(a, b int) bool { return text(copied[a]) < text(copied[b]) })
	return copied
}

func plain(value any) (plain any) {
	_ = json.Unmarshal([]byte(text(value)), &plain)
	return plain
}

func text(value any) string {
	bytes, err := json.Marshal(value)
	if err != nil {
		return err.Error()
	}
	return string(bytes)
}
