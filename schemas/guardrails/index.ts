/** Public API for the guardrail checks that the hooks and the runtime share. */
export { guardrailViolations, guardrailWarnings } from './check.ts'
export { LinearExpression, ExpressionSearch } from './expression.ts'
