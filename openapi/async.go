package openapi

import (
	"fmt"
	"net/url"
	"reflect"
	"strings"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/internal/schema"
	"github.com/dunlinhttp/dunlin/typed"
)

// A Channel is a WebSocket, an event stream or a topic in an AsyncAPI document. One of Route and Topic is set.
type Channel struct {
	Route string // pattern of a registered GET route that opens a WebSocket or an event stream, such as "/rooms/{room}"
	Topic string // name of a topic, with parameters in braces, such as "orders/{id}"

	Summary, Description string
	In                   []Message // from clients
	Out                  []Message // to clients
}

// A Message is a kind of message of a channel, see MessageOf.
type Message struct {
	summary string
	node    *schema.Node
	err     error
}

// MessageOf returns the message whose payload is the JSON of a T, a named struct. The rules in the tags of T are part of the document, as
// in typed actions.
func MessageOf[T any](summary string) Message {
	t := reflect.TypeFor[T]()
	n, err := schema.Of(t)
	if err == nil {
		if _, ok := isComponent(n); !ok {
			err = fmt.Errorf("%v is not a named struct", t)
		}
	}
	return Message{summary, n, err}
}

// AsyncDocument returns the AsyncAPI 3.0 document of channels of app, as indented JSON that ends with a line break. Schemas and names are
// those of Document. Config.OpenAPI, Routes and Tags have no effect. The servers of Config are written with the schemes ws and wss.
// AsyncDocument returns an error if a route is not registered, a channel or a type occurs twice with one name, or a type of a message has
// invalid rules.
func AsyncDocument(app *dunlin.App, c Config, channels ...Channel) ([]byte, error) {
	doc, err := buildAsync(app, c, channels)
	if err != nil {
		return nil, fmt.Errorf("openapi: AsyncAPI document: %w", err)
	}
	return append(appendJSON(nil, doc, 0), '\n'), nil
}

func buildAsync(app *dunlin.App, c Config, list []Channel) (*object, error) {
	g := &generator{components: map[reflect.Type]*component{}, ignoreUnknown: true}
	for _, d := range typed.Operations(app) {
		d := d.Describe()
		g.ignoreReadOnly, g.ignoreUnknown = d.IgnoresReadOnly, d.IgnoresUnknown // these are settings of the app
	}
	for _, ch := range list {
		for d, messages := range ch.messages() {
			for _, m := range messages {
				if m.err != nil {
					return nil, m.err
				}
				g.collect(m.node, direction(d))
			}
		}
	}
	sortTypes(g.types)
	g.splitTypes()
	var err error
	if g.names, err = nameTypes(g.types); err != nil {
		return nil, err
	}
	channels, operations, messages := new(object), new(object), new(object)
	for _, ch := range list {
		if err := g.channel(app, ch, channels, operations, messages); err != nil {
			return nil, err
		}
	}
	schemas, err := g.componentSchemas(nil)
	if err != nil {
		return nil, err
	}
	servers, err := asyncServers(c.Servers)
	if err != nil {
		return nil, err
	}
	doc := new(object).put("asyncapi", "3.0.0").put("info", asyncInfo(c)).put("defaultContentType", "application/json").set("servers", servers)
	doc.put("channels", channels).put("operations", operations)
	return doc.put("components", new(object).set("messages", messages).set("schemas", schemas)), nil
}

// messages returns the messages by direction.
func (ch *Channel) messages() [directions][]Message {
	return [directions][]Message{input: ch.In, output: ch.Out}
}

// asyncInfo returns the information about the API. AsyncAPI has no summary there, and a license has a name.
func asyncInfo(c Config) *object {
	if c.Description == "" {
		c.Description = c.Summary
	}
	c.Summary, c.License.Identifier = "", ""
	return info(c)
}

// asyncServers returns the servers, named by their hosts.
func asyncServers(list []Server) (*object, error) {
	servers := new(object)
	for _, s := range list {
		u, err := url.Parse(s.URL)
		protocol := map[string]string{"http": "ws", "https": "wss", "ws": "ws", "wss": "wss"}
		if err != nil || u.Host == "" || protocol[u.Scheme] == "" || servers.get(cleanName(u.Host)) != nil {
			return nil, fmt.Errorf("server %q: the URL needs a scheme and a host that no other server has", s.URL)
		}
		servers.put(cleanName(u.Host), new(object).put("host", u.Host).put("protocol", protocol[u.Scheme]).
			set("pathname", strings.TrimSuffix(u.Path, "/")).set("description", s.Description))
	}
	return servers, nil
}

// channel adds a channel, its operations and its messages.
func (g *generator) channel(app *dunlin.App, ch Channel, channels, operations, messages *object) error {
	address, kind := ch.Topic, "topic"
	if ch.Route != "" {
		address, kind = ch.Route, "route"
		if !hasRoute(app, ch.Route) {
			return fmt.Errorf("%s is not a registered GET route", ch.Route)
		}
	}
	if (ch.Route == "") == (ch.Topic == "") {
		return fmt.Errorf("a channel needs either a route or a topic")
	}
	address, names := asyncAddress(address)
	id := operationID(kind, address)
	if channels.get(id) != nil {
		return fmt.Errorf("two channels are called %s", id)
	}
	params, own := new(object), new(object)
	for _, name := range names {
		params.put(name, new(object))
	}
	for d, list := range ch.messages() {
		var refs []any
		for _, m := range list {
			name := g.ref(m.node.Type, direction(d))
			if messages.get(name) == nil {
				messages.put(name, new(object).put("name", name).set("summary", m.summary).put("payload", g.schema(m.node, direction(d))))
			}
			if own.get(name) == nil {
				own.put(name, reference("components/messages/"+name))
			}
			refs = append(refs, reference("channels/"+id+"/messages/"+name))
		}
		action := [directions]string{input: "receive", output: "send"}[d] // as the application acts
		if refs != nil {
			operations.put(action+exportedName(id), new(object).put("action", action).put("channel", reference("channels/"+id)).put("messages", refs))
		}
	}
	o := new(object).put("address", address).set("summary", ch.Summary).set("description", ch.Description).set("parameters", params).set("messages", own)
	channels.put(id, o)
	return nil
}

func reference(to string) *object { return new(object).put("$ref", "#/"+to) }

// hasRoute reports whether a pattern is registered for GET.
func hasRoute(app *dunlin.App, pattern string) bool {
	for _, r := range app.Routes() {
		if r.Pattern == pattern && (r.Methods == "*" || strings.Contains(","+r.Methods+",", ",GET,")) {
			return true
		}
	}
	return false
}

// asyncAddress returns a pattern without constraints, and the names of its parameters.
func asyncAddress(pattern string) (address string, names []string) {
	for {
		before, rest, ok := strings.Cut(pattern, "{")
		inner, after, closed := strings.Cut(rest, "}")
		if !ok || !closed {
			return address + pattern, names
		}
		name, _, _ := strings.Cut(strings.TrimSuffix(inner, "..."), ":")
		address, names, pattern = address+before+"{"+name+"}", append(names, name), after
	}
}
