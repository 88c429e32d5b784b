/**
 * The regular expression engine. A program part that is loaded when the first pattern is used
 * (`schemas/workflow/pattern.ts`).
 */
export { RE2JS } from '@bufbuild/re2'
