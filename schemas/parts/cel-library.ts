/**
 * The subset of the CEL library in use. A program part that is loaded with the first expression
 * (`schemas/validation/cel.ts`).
 */
export { celEnv, isCelError, isCelList, isCelMap, isCelUint, parse, plan } from '@bufbuild/cel'
