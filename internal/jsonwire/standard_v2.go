//go:build goexperiment.jsonv2 && go1.27

package jsonwire

import (
	jsonv2 "encoding/json/v2"
	"reflect"
)

// encoding/json of Go 1.27 is built on encoding/json/v2 and also calls the method
// UnmarshalJSONFrom.
func init() { unmarshalerFromType = reflect.TypeFor[jsonv2.UnmarshalerFrom]() }
