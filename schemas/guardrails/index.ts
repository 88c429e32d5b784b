/** What hooks and the runtime share of the guardrails: regular expressions, and the checks that the schema cannot say. */
export { guardrailViolations, guardrailWarnings } from './check.ts'
export { LinearExpression, ExpressionSearch } from './expression.ts'
