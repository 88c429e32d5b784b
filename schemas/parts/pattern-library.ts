/** The engine of regular expressions: a part of the program that is loaded with the first pattern (`schemas/workflow/pattern.ts`). */
export { RE2JS } from '@bufbuild/re2'
