package main

import (
	"bytes"
	"io"
	"mime/multipart"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/dunlintest"
)

func TestUpload(t *testing.T) {
	dir := t.TempDir()
	var form bytes.Buffer
	w := multipart.NewWriter(&form)
	part, err := w.CreateFormFile("file", "../hello.txt")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(part, strings.Repeat("hello ", 100_000)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	resp, err := dunlintest.NewClient(newApp(dunlin.Config{}, dir)).Post("http://h.example/files", w.FormDataContentType(), &form)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if body, _ := io.ReadAll(resp.Body); resp.StatusCode != 201 || string(body) != `{"hello.txt":600000}` {
		t.Errorf("got %s %s", resp.Status, body)
	}
	if info, err := os.Stat(filepath.Join(dir, "hello.txt")); err != nil || info.Size() != 600_000 {
		t.Error(info, err)
	}
}
