// Package config reads geoproxy's one file.
//
// # Reading
//
// The file is YAML and read strictly: a key that nobody reads, a value of
// another kind than is wanted, a unit that is missing or unknown and a
// contradiction between keys are mistakes. All of them are found in one run,
// each as file:line:column: path: message. Things that work and are probably
// not meant are warnings in the same form.
//
// ${VAR} and ${VAR:-default} expand inside values, after the YAML has been
// parsed: what a variable holds is never read as YAML, so it can add no key, no
// list and no document. $$ stands for one $.
//
// # What always holds
//
//  1. Reading is bounded: by the size of the file, by the number of values once
//     aliases are followed, by their depth, and by what expansion adds.
//  2. A mistake quotes the file, never what a variable held.
//  3. A file with a mistake is not used at all. At a reload the running one
//     stays.
//  4. Relative names of files in it are relative to the file, so that it means
//     the same wherever geoproxy is started.
package config
