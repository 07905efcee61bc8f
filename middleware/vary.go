package middleware

import (
	"strings"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/ext"
)

// varyOn adds the name of a request header to Vary of the response, unless Vary already has it (RFC
// 9110 section 12.5.5). block is a Vary field with this name alone.
func varyOn(resp dunlin.Response, name string, block *dunlin.HeaderBlock) dunlin.Response {
	switch first := resp.Get("Vary"); {
	case first == "":
		return ext.DefaultHeaders(resp, block)
	case inList(first, name) || inList(first, "*"):
		return resp
	}
	for _, line := range resp.Values("Vary") {
		if inList(line, name) || inList(line, "*") {
			return resp
		}
	}
	return resp.AddHeader("Vary", name)
}

// inList reports whether a comma-separated list has an element, ignoring case.
func inList(list, element string) bool {
	for list != "" {
		var item string
		item, list, _ = strings.Cut(list, ",")
		if strings.EqualFold(strings.TrimSpace(item), element) {
			return true
		}
	}
	return false
}
