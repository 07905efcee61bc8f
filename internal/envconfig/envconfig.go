// Package envconfig fills the fields of a struct from environment variables, and reports all invalid variables together. It can
// fill any struct.
package envconfig

import (
	"cmp"
	"encoding"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/dunlinhttp/dunlin/internal/bytesize"
)

// Reserved lists variables that have Dunlin's prefix and are not settings of an app. internal/lifecycle sets DUNLIN_RESTART for
// the next process. The documentation uses DUNLIN_STORE for the URL of a store.
var Reserved = []string{"DUNLIN_RESTART", "DUNLIN_STORE"}

// Choices has the names of the values of integer types. The index of a name is the value.
type Choices map[reflect.Type][]string

// Fill sets the fields of the struct to which into points. environ has the form of the result of os.Environ. An empty variable
// counts as not set.
//
// The name of a field's variable is prefix, an underscore, and the words of the field's name in upper case, joined by underscores:
// the variable of MaxBody is PREFIX_MAX_BODY, and that of TLSAddr is PREFIX_TLS_ADDR. The tag env sets other words. A field that
// is a struct has no variable. Its fields have variables, whose names do not contain the name of the struct.
//
// The error names every variable with an invalid value, and every variable that has the prefix and belongs to no field. If Fill
// returns an error, *into is unchanged.
func Fill(prefix string, into any, environ []string, choices Choices) error {
	v := reflect.ValueOf(into).Elem()
	filled := reflect.New(v.Type()).Elem()
	filled.Set(v)
	fields := map[string]reflect.Value{}
	collect(prefix, filled, fields, choices)
	var errs []error
	for _, variable := range slices.Sorted(slices.Values(environ)) {
		name, text, _ := strings.Cut(variable, "=")
		if !strings.HasPrefix(name, prefix+"_") || slices.Contains(Reserved, name) || text == "" {
			continue
		}
		field, known := fields[name]
		if !known {
			errs = append(errs, fmt.Errorf("%s is not a setting%s", name, suggestion(name, fields)))
			continue
		}
		if err := set(field, text, choices); err != nil {
			errs = append(errs, fmt.Errorf("%s is %q: %w", name, text, err))
		}
	}
	if len(errs) > 0 {
		return errors.Join(errs...)
	}
	v.Set(filled)
	return nil
}

// collect adds the fields of a struct to fields. The keys are the names of their variables.
func collect(prefix string, v reflect.Value, fields map[string]reflect.Value, choices Choices) {
	for i := range v.NumField() {
		f := v.Type().Field(i)
		if !f.IsExported() {
			continue
		}
		name := prefix + "_" + cmp.Or(f.Tag.Get("env"), Words(f.Name))
		switch field := v.Field(i); {
		case settable(field, choices):
			fields[name] = field
		case field.Kind() == reflect.Struct:
			collect(prefix, field, fields, choices)
		}
	}
}

// Words returns the words of a Go name in upper case, joined by underscores. A word begins at an upper-case letter that follows a
// lower-case letter or precedes one.
func Words(name string) string {
	var b strings.Builder
	runes := []rune(name)
	for i, r := range runes {
		if i > 0 && unicode.IsUpper(r) && (unicode.IsLower(runes[i-1]) || i+1 < len(runes) && unicode.IsLower(runes[i+1])) {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToUpper(r))
	}
	return b.String()
}

var durationType = reflect.TypeFor[time.Duration]()

// settable reports whether set supports the type of the field.
func settable(field reflect.Value, choices Choices) bool {
	if _, ok := field.Addr().Interface().(encoding.TextUnmarshaler); ok || choices[field.Type()] != nil {
		return true
	}
	switch field.Kind() {
	case reflect.String, reflect.Bool, reflect.Int, reflect.Int64:
		return true
	case reflect.Slice:
		return field.Type().Elem().Kind() == reflect.String
	}
	return false
}

// set sets a field to the value of text.
func set(field reflect.Value, text string, choices Choices) error {
	if names := choices[field.Type()]; names != nil {
		i := slices.Index(names, text)
		if i < 0 {
			return fmt.Errorf("it must be one of %s", strings.Join(names, ", "))
		}
		field.Set(reflect.ValueOf(i).Convert(field.Type()))
		return nil
	}
	if u, ok := field.Addr().Interface().(encoding.TextUnmarshaler); ok {
		return bare(u.UnmarshalText([]byte(text)))
	}
	switch {
	case field.Kind() == reflect.String:
		field.SetString(text)
	case field.Kind() == reflect.Bool:
		b, err := strconv.ParseBool(text)
		if err != nil {
			return errors.New("it must be true or false")
		}
		field.SetBool(b)
	case field.Type() == durationType:
		d, err := time.ParseDuration(text)
		if err != nil {
			return errors.New("it must be a duration such as 500ms, 30s or 1m30s")
		}
		field.SetInt(int64(d))
	case field.Kind() == reflect.Slice:
		list := reflect.MakeSlice(field.Type(), 0, 0)
		for part := range strings.SplitSeq(text, ",") {
			if part = strings.TrimSpace(part); part != "" {
				list = reflect.Append(list, reflect.ValueOf(part).Convert(field.Type().Elem()))
			}
		}
		field.Set(list)
	default:
		return setInt(field, text)
	}
	return nil
}

// setInt sets a field to a number. The number may be negative, or a size such as 64KiB.
func setInt(field reflect.Value, text string) error {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil && bytesize.Parse(&n, []byte(text)) != nil {
		return errors.New("it must be a whole number, or a size such as 64KiB")
	}
	if field.OverflowInt(n) {
		return errors.New("it is too large")
	}
	field.SetInt(n)
	return nil
}

// bare removes the name of the package from an error, because the caller adds another prefix.
func bare(err error) error {
	if err == nil {
		return nil
	}
	return errors.New(strings.TrimPrefix(err.Error(), "dunlin: "))
}

// suggestion returns a part of a message that names the known variable that is most similar to name.
func suggestion(name string, fields map[string]reflect.Value) string {
	best, least := "", 3 // names that differ in this many characters do not count as similar
	for known := range fields {
		if d := distance(name, known); d < least || d == least && best != "" && known < best {
			best, least = known, d
		}
	}
	if best == "" {
		return ""
	}
	return ": did you mean " + best + "?"
}

// distance returns the number of characters that must be inserted, removed or replaced to change a into b.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
