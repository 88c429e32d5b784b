/**
 * The regular expression engine. A program loads this module when it first uses a pattern
 * (`schemas/workflow/pattern.ts`).
 */
export { RE2JS } from '@bufbuild/re2'
