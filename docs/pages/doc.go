// Package pages has the code of the pages in docs/middleware, of docs/CONTENT.md, docs/GUIDE-typed.md and docs/DEPLOY.md, in
// tests. A test of internal/archtest requires that each code block of these pages is here or in the module that the page
// describes.
package pages
