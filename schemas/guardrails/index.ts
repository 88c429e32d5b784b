/** Public API of the guardrail checks that hooks and the runtime share. */
export { guardrailViolations, guardrailWarnings } from './check.ts'
export { LinearExpression, ExpressionSearch } from './expression.ts'
