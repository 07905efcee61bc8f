package main

import (
	"context"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/dunlintest"
)

// onEngines runs f on both engines, with a client of the SDK that is connected to the tool. heard gets the messages about progress.
func onEngines(t *testing.T, tool mcp.ToolHandlerFor[query, sightings], f func(t *testing.T, c *mcp.ClientSession, heard <-chan string)) {
	for _, engine := range []dunlin.Engine{dunlin.EngineLoop, dunlin.EngineStd} {
		t.Run(engine.String(), func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			t.Cleanup(cancel)
			addr := dunlintest.Serve(t, newApp(dunlin.Config{Engine: engine}, tool))
			heard := make(chan string, 10)
			client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, &mcp.ClientOptions{
				ProgressNotificationHandler: func(_ context.Context, n *mcp.ProgressNotificationClientRequest) { heard <- n.Params.Message },
			})
			c, err := client.Connect(ctx, &mcp.StreamableClientTransport{Endpoint: "http://" + addr + "/mcp"}, nil)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = c.Close() })
			f(t, c, heard)
		})
	}
}

// ask returns a call of the tool that asks for its progress.
func ask() *mcp.CallToolParams {
	p := &mcp.CallToolParams{Name: "search", Arguments: query{Bird: "dunlin"}}
	p.SetProgressToken("p")
	return p
}

func TestSearch(t *testing.T) {
	onEngines(t, search, func(t *testing.T, c *mcp.ClientSession, heard <-chan string) {
		result, err := c.CallTool(t.Context(), ask())
		if err != nil || result.IsError {
			t.Fatalf("got %+v, %v", result, err)
		}
		if places := result.StructuredContent.(map[string]any)["places"].([]any); len(places) != 3 {
			t.Errorf("got %d places, want 3", len(places))
		}
		if got := <-heard; got != "searched Wadden Sea for a dunlin" {
			t.Errorf("got progress %q", got)
		}
		result, err = c.CallTool(t.Context(), &mcp.CallToolParams{Name: "search", Arguments: map[string]any{"bird": 7}})
		if err == nil && !result.IsError {
			t.Errorf("a bird that is a number: got %+v", result)
		}
	})
}

// Progress arrives while the tool runs, and a client that gives up cancels the tool.
func TestGivingUp(t *testing.T) {
	begun, ended := make(chan struct{}, 1), make(chan error, 1)
	endless := func(ctx context.Context, call *mcp.CallToolRequest, _ query) (*mcp.CallToolResult, sightings, error) {
		err := progress(ctx, call, 1, 2, "begun")
		<-ctx.Done()
		ended <- err
		return nil, sightings{}, ctx.Err()
	}
	onEngines(t, endless, func(t *testing.T, c *mcp.ClientSession, heard <-chan string) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go func() {
			if got := <-heard; got != "begun" {
				t.Errorf("got progress %q", got)
			}
			begun <- struct{}{}
			cancel()
		}()
		if _, err := c.CallTool(ctx, ask()); err == nil {
			t.Error("a cancelled call has a result")
		}
		<-begun
		if err := <-ended; err != nil {
			t.Errorf("progress: %v", err)
		}
	})
}
