package main

import (
	"context"
	"net/http"
	"os"

	"github.com/holdfast-agents/holdfast"
	"github.com/holdfast-agents/holdfast/access"
	"github.com/holdfast-agents/holdfast/apikey"
	"github.com/holdfast-agents/holdfast/codes"
	"github.com/holdfast-agents/holdfast/jwtauth"
	"github.com/holdfast-agents/holdfast/server"
)

// letIn sets who may call the server, and what they may do. Without keys and without an
// identity provider, only this machine is served.
func letIn(cfg *server.Config) error {
	list, jwks := os.Getenv("SHOP_KEYS"), os.Getenv("SHOP_JWKS")
	if list == "" && jwks == "" {
		return nil
	}
	cfg.Authorize = keepOrders
	if list != "" {
		keys, err := apikey.Parse(list, os.ReadFile)
		if err != nil {
			return err
		}
		cfg.Authenticate = keys.Authenticate
	}
	if jwks == "" {
		return nil
	}
	tokens, err := jwtauth.New(jwtauth.Options{JWKS: jwks, Issuer: os.Getenv("SHOP_ISSUER"), Audience: "shop",
		Tenant: "shop"})
	if err != nil {
		return err
	}
	byKey := cfg.Authenticate
	cfg.Authenticate = func(r *http.Request) (holdfast.Principal, error) {
		if byKey == nil || jwtauth.IsToken(r) {
			return tokens.Authenticate(r)
		}
		return byKey(r)
	}
	return nil
}

// keepOrders is the server's own rule, except that customers delete nothing: threads are
// what the shop knows of their orders.
func keepOrders(ctx context.Context, who holdfast.Principal, action access.Action, agent string) error {
	if err := server.Authorize(ctx, who, action, agent); err != nil {
		return err
	}
	if action == access.Delete && server.Authorize(ctx, who, access.OperateTenant, "") != nil {
		return holdfast.Errorf(codes.Forbidden, "Orders are kept.").WithHint("Ask the shop to delete them.")
	}
	return nil
}
