#include "textflag.h"

// func At(address uintptr, lines int)
TEXT ·At(SB), NOSPLIT, $0-16
	MOVQ address+0(FP), AX
	MOVQ lines+8(FP), CX
next:
	PREFETCHT0 (AX)
	ADDQ $64, AX
	DECQ CX
	JGT  next
	RET
