/**
 * Composite tools (workflows): the checks that the schema cannot say, and the template language. Hooks check at
 * admission and in the sync, the runtime checks at start and executes. A public API of its own, because it brings a JSON
 * Schema compiler along that few need.
 */
export { CheckBudget } from './check-budget.ts'
export { workflowViolations } from './checks.ts'
export {
  type Command,
  type FunctionName,
  type Node,
  type Operand,
  parseTemplate,
  type Pipe,
  type Template,
} from './template/index.ts'
export { usableSchema } from './json-schema.ts'
export { SchemaCheck, schemaCheck } from './schema-check.ts'
export { maxArgumentDepth, propertyOf } from './templates.ts'
export { booleanIn, conditionIn, integerIn, type JsonType, numberIn } from './typed-text.ts'
export { workflowWarnings } from './warnings.ts'
