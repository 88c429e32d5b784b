/**
 * The regular expression engine. A program part that is loaded with the first pattern (`schemas/workflow/pattern.ts`).
 */
export { RE2JS } from '@bufbuild/re2'
