package a

type Used struct{ Part Part }

type Part int

const (
	One Part = iota
	Two
)

func (u *Used) Method() Result { return Result{hidden: 0} }

type Result struct{ hidden Lonely }

type Lonely int

func Alone() {}

func TestedOnly() {}

func InExample() {}
