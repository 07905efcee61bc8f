// Package archtest checks the architecture of the module with tests: the allowed imports of each folder, the files that may use
// unsafe, one package comment per folder, the sizes of files, sleeping tests, and the README's example. A failure names the
// file and the reason for the rule.
//
// The rules apply to the core module only, not to folders with a go.mod of their own.
package archtest
