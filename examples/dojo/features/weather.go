package features

import (
	"context"
	"hash/fnv"
	"math"
	"strings"
	"time"

	"github.com/holdfast-agents/holdfast"
)

// place is what get_weather is asked for.
type place struct {
	Location string `json:"location" jsonschema:"a city"`
}

// weather is what the page draws a card of.
type weather struct {
	Location    string  `json:"location"`
	Conditions  string  `json:"conditions"`
	Temperature float64 `json:"temperature"`
	FeelsLike   float64 `json:"feels_like"`
	Humidity    float64 `json:"humidity"`
	WindSpeed   float64 `json:"wind_speed"`
}

// backendTools has a tool of the server's, whose calls the page shows in its own way.
func backendTools(takes time.Duration) holdfast.Agent {
	look := func(ctx context.Context, p place) (weather, error) {
		if err := work(ctx, takes); err != nil {
			return weather{}, err
		}
		return weatherIn(p.Location), nil
	}
	return holdfast.Agent{
		Name:         "backend_tool_rendering",
		Description:  "Asks the server for the weather, which the page shows as a card.",
		Instructions: "You know the weather everywhere: ask get_weather.",
		Tools: []holdfast.Tool{
			holdfast.NewTool("get_weather", "Says what the weather is like in a city.", look,
				holdfast.WithEffect(holdfast.EffectPure)),
		},
	}
}

// weatherIn makes up the weather of a city. It is always the same there.
func weatherIn(city string) weather {
	h := fnv.New32a()
	h.Write([]byte(strings.ToLower(city)))
	n := h.Sum32()
	conditions := []string{"Sunny", "Partly cloudy", "Cloudy", "Rainy", "Snowy"}[n%5]
	temperature := float64(n/5%22) + 6
	if conditions == "Snowy" {
		temperature = -float64(n / 5 % 8)
	}
	wind := float64(n / 7 % 40)
	return weather{
		Location:    city,
		Conditions:  conditions,
		Temperature: temperature,
		FeelsLike:   math.Round(temperature - wind/8),
		Humidity:    float64(30 + n/11%60),
		WindSpeed:   wind,
	}
}
