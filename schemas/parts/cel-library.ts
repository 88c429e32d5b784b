/** What is used of the CEL library: a part of the program that is loaded with the first expression (`schemas/validation/cel.ts`). */
export { celEnv, isCelError, isCelList, isCelMap, isCelUint, parse, plan } from '@bufbuild/cel'
