//go:build goexperiment.jsonv2 && go1.27

package jsonwire

import (
	jsonv2 "encoding/json/v2"
	"reflect"
)

// encoding/json is built on encoding/json/v2 and also calls this method.
func init() { unmarshalerFromType = reflect.TypeFor[jsonv2.UnmarshalerFrom]() }
