/** The prefix of all paths of the recruitment service. */
export const base_path = '/recruitment/v1';
