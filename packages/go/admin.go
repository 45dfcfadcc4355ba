package bolide

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"
)

// admin sends requests to the admin API of a server on this machine, with the account key.
type admin struct {
	client   http.Client
	endpoint string
	key      string
	report   func(error)
}

// RequestError is the error if the server refuses a request of the admin API.
type RequestError struct {
	// Status is the HTTP status.
	Status int
	// Message has the request and what the server says.
	Message string
}

func (err *RequestError) Error() string {
	return err.Message
}

func newAdmin(endpoint, key string, report func(error)) *admin {
	// Without a proxy of the environment, and without connections that stay open.
	transport := &http.Transport{Proxy: nil, DisableKeepAlives: true}
	return &admin{http.Client{Transport: transport, Timeout: time.Minute}, endpoint, key, report}
}

// request sends a request to a path below /_bolide/, which is escaped already, and decodes the answer if there is somewhere to put it.
func (admin *admin) request(method, path string, body map[string]any, answer any) error {
	if err := admin.send(method, path, body, answer); err != nil {
		return admin.failed(err)
	}
	return nil
}

// failed reports an error to the test, and returns it.
func (admin *admin) failed(err error) error {
	admin.report(err)
	return err
}

func (admin *admin) send(method, path string, body map[string]any, answer any) error {
	what := method + " /_bolide/" + path
	content, err := json.Marshal(body)
	if err != nil {
		return err
	}
	if body == nil {
		content = nil
	}
	request, err := http.NewRequest(method, admin.endpoint+"/_bolide/"+path, bytes.NewReader(content))
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	request.Header.Set("Authorization", "Bearer "+admin.key)
	request.Header.Set("Content-Type", "application/json")
	response, err := admin.client.Do(request)
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	if response.StatusCode >= 300 {
		return &RequestError{response.StatusCode, fmt.Sprintf("%s: %d %s", what, response.StatusCode, messageOf(text))}
	}
	if answer == nil {
		return nil
	}
	if err := json.Unmarshal(text, answer); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// messageOf returns the message of an error's body, or the body as it is.
func messageOf(body []byte) string {
	var refusal struct {
		Message string `json:"message"`
	}
	if json.Unmarshal(body, &refusal) == nil && refusal.Message != "" {
		return refusal.Message
	}
	return string(body)
}
