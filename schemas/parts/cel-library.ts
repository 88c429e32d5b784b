/**
 * The parts of the CEL library that Gatehouse uses. A program loads this module when it first uses an expression
 * (`schemas/validation/cel.ts`).
 */
export { celEnv, isCelError, isCelList, isCelMap, isCelUint, parse, plan } from '@bufbuild/cel'
