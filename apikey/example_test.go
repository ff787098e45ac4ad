package apikey_test

import (
	"crypto/rand"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"

	"github.com/holdfast-agents/holdfast/apikey"
	"github.com/holdfast-agents/holdfast/server"
)

// A user gets the key; the server is configured with its entry, from which nobody can
// compute the key.
func ExampleKeys_Authenticate() {
	key, entry, err := apikey.New(rand.Reader, "acme", "alice")
	if err != nil {
		fmt.Println(err)
		return
	}
	keys, err := apikey.Parse(entry, os.ReadFile)
	if err != nil {
		fmt.Println(err)
		return
	}
	cfg := server.Config{Authenticate: keys.Authenticate}

	r := httptest.NewRequest(http.MethodGet, "/threads", nil)
	r.Header.Set("Authorization", "Bearer "+key)
	who, err := cfg.Authenticate(r)
	fmt.Println(who.Tenant, who.User, err)
	r.Header.Set("Authorization", "Bearer guessed")
	_, err = cfg.Authenticate(r)
	fmt.Println(err)
	// Output:
	// acme alice <nil>
	// unauthenticated: The API key is not valid.
}
