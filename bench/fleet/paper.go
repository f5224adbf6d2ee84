package main

func (b *bench) paper() error { return nil }
