package typed_test

import (
	"fmt"
	"io"
	"log"
	"regexp"
	"strings"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/dunlintest"
	"github.com/dunlinhttp/dunlin/typed"
)

func init() {
	typed.Format("plate", "a number plate such as B-AB 123", regexp.MustCompile(`^[A-Z]{1,3}-[A-Z]{1,2} [0-9]{1,4}$`).MatchString)
}

// A custom format is a rule like any other: requests are checked by it, and the document names it.
func ExampleFormat() {
	app := dunlin.New(dunlin.Config{})
	typed.Get(app, "/cars", func(_ *dunlin.Request, in struct {
		Plate string `query:"plate" format:"plate"`
	}) (string, error) {
		return "the car " + in.Plate, nil
	})

	client := dunlintest.NewClient(app)
	for _, plate := range []string{"B-AB+123", "123"} {
		resp, err := client.Get("http://cars.example/cars?plate=" + plate)
		if err != nil {
			log.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%d %s\n", resp.StatusCode, body)
	}
	// Output:
	// 200 "the car B-AB 123"
	// 400 {"title":"Bad Request","status":400,"detail":"the request is invalid in 1 place","errors":[{"in":"query","parameter":"plate","rule":"format","limit":"plate","detail":"must be a number plate such as B-AB 123"}]}
}

// The operations of a group share their tag and their errors.
func ExampleNewGroup() {
	app := dunlin.New(dunlin.Config{})
	missing := typed.NewFault(404, "no-article", "There is no such article")
	type slug struct {
		Slug string `path:"slug"`
	}
	act := func(*dunlin.Request, slug) (typed.None, error) { return typed.None{}, missing }

	articles := typed.NewGroup(app.Group("/articles")).Tags("articles").Faults(missing)
	typed.Get(articles, "/{slug}", act).Name("showArticle")
	typed.Delete(articles, "/{slug}", act).Name("deleteArticle")

	for _, op := range typed.Operations(app) {
		about := op.Describe()
		fmt.Println(about.Route.Name, about.Tags)
	}
	// Output:
	// showArticle [articles]
	// deleteArticle [articles]
}

// amount is written as a string with two digits after the point.
type amount int64

func (a amount) MarshalJSON() ([]byte, error) {
	return fmt.Appendf(nil, `"%d.%02d"`, a/100, a%100), nil
}

func (a *amount) UnmarshalJSON(text []byte) error {
	var whole, cents int64
	_, err := fmt.Sscanf(string(text), `"%d.%02d"`, &whole, &cents)
	*a = amount(whole*100 + cents)
	return err
}

func init() { typed.SchemaAs[amount, string](`pattern:"^[0-9]+\\.[0-9]{2}$" example:"9.90"`) }

// Requests are checked by the description before the type reads them.
func ExampleSchemaAs() {
	type order struct {
		Price amount `json:"price"`
	}
	app := dunlin.New(dunlin.Config{})
	typed.Post(app, "/orders", func(_ *dunlin.Request, in struct{ Body order }) (int64, error) {
		return int64(in.Body.Price), nil
	})

	client := dunlintest.NewClient(app)
	for _, body := range []string{`{"price":"12.50"}`, `{"price":"12.5"}`} {
		resp, err := client.Post("http://shop.example/orders", "application/json", strings.NewReader(body))
		if err != nil {
			log.Fatal(err)
		}
		text, err := io.ReadAll(resp.Body)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%d %s\n", resp.StatusCode, text)
	}
	// Output:
	// 200 1250
	// 400 {"title":"Bad Request","status":400,"detail":"the request is invalid in 1 place","errors":[{"in":"body","pointer":"#/price","rule":"pattern","limit":"^[0-9]+\\.[0-9]{2}$","detail":"must match ^[0-9]+\\.[0-9]{2}$"}]}
}
