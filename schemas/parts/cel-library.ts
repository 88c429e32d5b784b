/**
 * The subset of the CEL library in use. This program part is loaded when the first expression is used
 * (`schemas/validation/cel.ts`).
 */
export { celEnv, isCelError, isCelList, isCelMap, isCelUint, parse, plan } from '@bufbuild/cel'
