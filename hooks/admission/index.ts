/** The door of admission: judging resources, offline or in a review. */
export { isKnownKind, resourceProblems } from './checks.ts'
export { type AdmissionResponse, type AdmissionReview, allowDelete, reviewAdmission } from './review.ts'
export { validateResource, type ValidateOptions, type Verdict } from './validate.ts'
