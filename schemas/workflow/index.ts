/**
 * Public API for composite tools (workflows): the template language, and checks against rules that the schema cannot
 * express. This entry point is separate, because it loads a JSON Schema compiler.
 */
export { CheckBudget } from './check-budget.ts'
export { workflowViolations } from './checks.ts'
export { usableSchema } from './json-schema.ts'
export { SchemaCheck, schemaCheck } from './schema-check.ts'
export { parseTemplate } from './template/parser.ts'
export type { Command, FunctionName, Node, Operand, Pipe, Template } from './template/tree.ts'
export { maxArgumentDepth, propertyOf } from './templates.ts'
export { booleanIn, conditionIn, integerIn, type JsonType, numberIn } from './typed-text.ts'
export { workflowWarnings } from './warnings.ts'
