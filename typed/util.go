package typed

import (
	"bytes"
	"cmp"
	"encoding"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strconv"
	"time"
)

func sortStrings(list []string) { slices.Sort(list) }

// A mapKey is a key of a map, and its text.
type mapKey struct {
	text string
	key  reflect.Value
}

// sortedMapKeys returns the keys of a map, sorted by their text.
func sortedMapKeys(v reflect.Value) []mapKey {
	keys := make([]mapKey, 0, v.Len())
	for _, key := range v.MapKeys() {
		keys = append(keys, mapKey{fmt.Sprint(key.Interface()), key})
	}
	slices.SortFunc(keys, func(a, b mapKey) int { return cmp.Compare(a.text, b.text) })
	return keys
}

func bytesReader(b []byte) io.Reader { return bytes.NewReader(b) }

// textOf formats a value as a parameter. The setter of the parameter parses this text.
func textOf(v reflect.Value) (string, error) {
	switch t := v.Type(); {
	case t == timeType:
		return v.Interface().(time.Time).Format(time.RFC3339Nano), nil
	case t == durationType:
		return v.Interface().(time.Duration).String(), nil
	case t.Implements(textMarshalerType):
		text, err := v.Interface().(encoding.TextMarshaler).MarshalText()
		return string(text), err
	}
	switch v.Kind() {
	case reflect.String:
		return v.String(), nil
	case reflect.Bool:
		return strconv.FormatBool(v.Bool()), nil
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return strconv.FormatInt(v.Int(), 10), nil
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return strconv.FormatUint(v.Uint(), 10), nil
	case reflect.Float32, reflect.Float64:
		return strconv.FormatFloat(v.Float(), 'g', -1, v.Type().Bits()), nil
	}
	return "", fmt.Errorf("a value of type %s cannot be written as a parameter", v.Type())
}

var textMarshalerType = reflect.TypeFor[encoding.TextMarshaler]()
