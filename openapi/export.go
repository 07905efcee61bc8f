package openapi

import (
	"os"

	"github.com/dunlinhttp/dunlin"
)

// ExportVariable is the name of the environment variable that makes Export write a document. Its value is the name of a
// file, or "-" for the standard output.
const ExportVariable = "DUNLIN_OPENAPI"

// Export writes the document and ends the program if the environment variable ExportVariable is set. Otherwise it does
// nothing. Call it after all operations were registered and before the app serves. The command "dunlin openapi write" uses
// it to get the document without starting the server.
func Export(app *dunlin.App, c Config) error {
	file := os.Getenv(ExportVariable)
	if file == "" {
		return nil
	}
	doc, err := Document(app, c)
	if err != nil {
		return err
	}
	if file == "-" {
		_, err = os.Stdout.Write(doc)
	} else {
		err = os.WriteFile(file, doc, 0o644)
	}
	if err == nil {
		os.Exit(0)
	}
	return err
}
