/**
 * The regular expression engine. This program part is loaded when the first pattern is used
 * (`schemas/workflow/pattern.ts`).
 */
export { RE2JS } from '@bufbuild/re2'
