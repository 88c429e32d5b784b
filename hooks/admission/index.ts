/** Public API of admission: checking resources, offline or in a review. */
export { type AdmissionResponse, type AdmissionReview, allowDelete, reviewAdmission } from './review.ts'
export { validateResource, type ValidateOptions, type Verdict } from './validate.ts'
