package openapi

import (
	"os"

	"github.com/dunlinhttp/dunlin"
)

// ExportVariable is the environment variable that has Export write a document: it holds
// the name of the file, "-" for the standard output.
const ExportVariable = "DUNLIN_OPENAPI"

// Export writes the document and ends the program, if the environment asks for it; else
// it does nothing. Call it when all operations are registered, before the app serves: that is how
// the command "dunlin openapi write" has the document of a service that does not listen.
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
