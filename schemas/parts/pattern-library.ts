/**
 * The regular expression engine. Programs load this part when they use the first pattern
 * (`schemas/workflow/pattern.ts`).
 */
export { RE2JS } from '@bufbuild/re2'
