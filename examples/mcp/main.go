// Command mcp serves a tool to language models by the Model Context Protocol (MCP), over streamable HTTP, with the official SDK.
//
//	go run .
//
// Clients connect to http://127.0.0.1:3000/mcp.
package main

import (
	"context"
	"fmt"
	"log"
	"net/http"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/dunlinhttp/dunlin"
)

func main() {
	if err := newApp(dunlin.Config{Addr: "127.0.0.1:3000"}, search).Run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

// newApp serves a tool. Each stream of the SDK occupies a goroutine, because the SDK is a standard handler.
func newApp(config dunlin.Config, tool mcp.ToolHandlerFor[query, sightings]) *dunlin.App {
	server := mcp.NewServer(&mcp.Implementation{Name: "birds", Version: "1"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "search", Description: "Searches the places where a bird was seen"}, tool)
	app := dunlin.New(config)
	app.HandleStd("*", "/mcp", mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil))
	return app
}

// A query is the input of the tool, and sightings are its output.
type query struct {
	Bird string `json:"bird" jsonschema:"name of the bird"`
}

type sightings struct {
	Places []string `json:"places"`
}

// search reports its progress after each place, if the client has requested progress notifications.
func search(ctx context.Context, call *mcp.CallToolRequest, q query) (*mcp.CallToolResult, sightings, error) {
	places := []string{"Wadden Sea", "Banc d'Arguin", "Bay of Cádiz"}
	for i, place := range places {
		if err := progress(ctx, call, i+1, len(places), fmt.Sprintf("searched %s for a %s", place, q.Bird)); err != nil {
			return nil, sightings{}, err
		}
	}
	return nil, sightings{places}, nil
}

// progress notifies the client of the progress of a call, if the client has requested it.
func progress(ctx context.Context, call *mcp.CallToolRequest, done, total int, message string) error {
	token := call.Params.GetProgressToken()
	if token == nil {
		return ctx.Err()
	}
	return call.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{
		ProgressToken: token, Progress: float64(done), Total: float64(total), Message: message,
	})
}
