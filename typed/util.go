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

// sortedMapKeys returns a map's keys in the order of their text.
func sortedMapKeys(v reflect.Value) []reflect.Value {
	keys := v.MapKeys()
	slices.SortFunc(keys, func(a, b reflect.Value) int {
		return cmp.Compare(fmt.Sprint(a.Interface()), fmt.Sprint(b.Interface()))
	})
	return keys
}

func bytesReader(b []byte) io.Reader { return bytes.NewReader(b) }

// textOf writes a value as a parameter: what its setter reads.
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
	return "", fmt.Errorf("a value of type %s has no text", v.Type())
}

var textMarshalerType = reflect.TypeFor[encoding.TextMarshaler]()
