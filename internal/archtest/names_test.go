package archtest_test

import (
	"go/ast"
	"testing"
)

// vagueNames are function names that each had several meanings in this module, with names that tell them apart.
var vagueNames = map[string]string{
	"take":    "name what is taken or done: nextBatch, acquire, addInput, readBytes",
	"look":    "name what is checked: checkQueue, checkRate, lookUp",
	"note":    "name what is recorded: recordError, countEvent",
	"lend":    "only memory is lent: sendLent, lendRecords; for the rest: yieldPlace, chargeBuffers",
	"letGo":   "name what is released: dropFree, releaseMemory, leaveListener",
	"putsOff": "name the queue: mustWaitInBacklog",
	"calm":    "name the event: refuseAbuser",
}

// The name of a function describes its purpose.
func TestNamesAreSpecific(t *testing.T) {
	for _, s := range allSources(t) {
		for _, d := range s.syntax.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && vagueNames[f.Name.Name] != "" {
				t.Errorf("/%s: the function name %s is vague: %s", s.folder, f.Name.Name, vagueNames[f.Name.Name])
			}
		}
	}
}
