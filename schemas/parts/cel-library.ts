/**
 * The used subset of the CEL library. Programs load this part when they use the first expression
 * (`schemas/validation/cel.ts`).
 */
export { celEnv, isCelError, isCelList, isCelMap, isCelUint, parse, plan } from '@bufbuild/cel'
